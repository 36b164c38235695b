// Denoise the image in front with kpca and open the result. A stack is one volume or film.
// Where the command is: the full path, as Fiji does not know your environment.
kpca = "kpca";

macro "Denoise (kernel PCA)" {
    title = getTitle();
    folder = getDirectory("temp") + "kpca-" + d2s(getTime(), 0) + File.separator;
    File.makeDirectory(folder);
    original = getImageID();
    run("Duplicate...", "title=image duplicate");
    saveAs("Tiff", folder + "image.tif");
    close();
    selectImage(original);
    // Words of their own, as some versions of ImageJ take no array of them.
    image = folder + "image.tif";
    if (nSlices > 1)
        output = exec(kpca, "denoise", "run", image, "--out", folder + "out", "--stack");
    else
        output = exec(kpca, "denoise", "run", image, "--out", folder + "out");
    result = folder + "out" + File.separator + "images" + File.separator + "image.tif";
    if (!File.exists(result))
        exit("kpca could not denoise it:\n" + output);
    open(result);
    rename(title + " (denoised)");
}
